"""A renderer that tests name."""


class NIRRenderer:
    pass
