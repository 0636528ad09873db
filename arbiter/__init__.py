"""Who leads: leader lock, epoch, channel state and history. Does not know setl."""
