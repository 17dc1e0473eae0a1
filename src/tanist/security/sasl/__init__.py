"""SASL, both sides: a state machine for each mechanism, which takes a token and says what comes next.

Nothing here sends, waits or reads a clock. `outcome` has what a step may say; `client` is the order of requests in
which a client of Kafka's protocol authenticates.
"""
