"""What a person at a terminal sees and answers: tables, questions, waiting, Ctrl-C, completion."""
