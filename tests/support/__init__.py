"""What tests of more than one part share."""
