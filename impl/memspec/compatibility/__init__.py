"""Who may reuse it, and who decides?"""
