"""The doubles of partners refuse what the real platforms would refuse."""
