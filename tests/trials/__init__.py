"""What five people do first, as scripts that need only an installed skvmf and the test extra."""
