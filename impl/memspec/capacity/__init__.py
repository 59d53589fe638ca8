"""Whose space is counted, and in which unit?"""
