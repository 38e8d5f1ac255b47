"""Pictures of a report, each one SVG element: no library, no script, colours from the page's own style."""
