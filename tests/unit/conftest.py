from support.pictures import curves, no_curves  # noqa: F401 (fixtures)
