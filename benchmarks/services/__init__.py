"""A JSON service on Flask and on Starlette, with routes that return one document and a hundred documents."""
