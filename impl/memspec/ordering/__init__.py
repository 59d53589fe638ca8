"""Who owns it, and when is it done?"""
