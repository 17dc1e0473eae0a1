"""Groups of the consumer protocol (KIP-848): the coordinator assigns, and members follow, each at its own pace."""
