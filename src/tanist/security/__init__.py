"""Who a client is and what it may do: principals, sessions, and what decides about them.

Pure: it decides on values, for nodes and the simulator alike. Certificates, stores and sockets are the runtime's.
"""
