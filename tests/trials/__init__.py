"""What five kinds of new users do first, and what they must get."""
