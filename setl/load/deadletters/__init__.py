"""Dead letters: faulty rows, stored beside the target until somebody decides about them.

What a letter is (`dead_letter`), what a store promises (`store`), what a sink does about letters
(`storing`), and which letters nobody can match with a row any more (`ambiguous`). Elsewhere stands
what needs something that this folder may not know: the stores themselves need a connection
(`setl.systems.mysql.stored.deadletters`, `setl.systems.search_index.deadletters`), a leader that
loads letters again needs its run (`setl.run.dead_letters`), and those who decide need the cluster
(`setl.operate.dead_letters`, and above it the command and the console's page).
"""
