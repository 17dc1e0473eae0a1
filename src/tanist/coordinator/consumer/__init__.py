"""Groups of the consumer protocol (KIP-848): the coordinator assigns, and each member follows at its own pace."""
