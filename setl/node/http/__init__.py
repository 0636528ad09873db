"""The HTTP interface of a node: for load balancers, Kubernetes, Prometheus, people and programs."""
