"""From verdicts to pages: everything that a reader sees. Knows no article; reads what one declares."""
