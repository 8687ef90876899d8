"""A small fabric of real packets: network namespaces joined by veth pairs, probed and broken on purpose."""
