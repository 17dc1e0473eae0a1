"""Who may ask and who may do what, as the metadata log has it: decisions about credentials and ACLs become records."""
