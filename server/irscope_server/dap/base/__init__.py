"""What the engine and the symbolic trace share: sections to walk through, expressions, facts."""
