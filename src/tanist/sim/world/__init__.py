"""The virtual ports: a clock, disks with a page cache, a network; and the nodes on them."""
