"""Who is active: mainstem, epoch, channel state and history. Knows nothing of setl."""
