"""Pages for people: their layout, headers, languages and forms. Both services fill this frame."""
