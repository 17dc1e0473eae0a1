"""The broker and the metadata log: the quorum member, the controller's host, the session with it, the image view."""
