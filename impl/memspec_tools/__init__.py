"""What reads, binds and shows the specification: pages, vectors, the clause lock, verification, gallery, evidence, site."""
