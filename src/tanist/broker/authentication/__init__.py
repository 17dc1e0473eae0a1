"""Who clients are, and who this node is to others: SASL on listeners and on the connections between nodes."""
