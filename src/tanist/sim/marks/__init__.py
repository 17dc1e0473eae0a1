"""Protocol situations, counted by name while a run goes by them."""
