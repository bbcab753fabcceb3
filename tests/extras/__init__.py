"""What each extra is for, as programs that need nothing but gmongo and that extra: tox runs each where nothing else is
installed. So they do without pytest.
"""
