"""What breaks in a run: nodes, links, disks and stored bytes. It emits events and judges nothing."""
