"""What a controller decides about who may do what, and how much of it: requests go in, records come out."""
