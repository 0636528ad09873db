"""Who is active: mainstem, epoch, channel state and history. Does not know setl."""
