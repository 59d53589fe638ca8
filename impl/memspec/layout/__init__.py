"""Which bytes, where, and in what state?"""
