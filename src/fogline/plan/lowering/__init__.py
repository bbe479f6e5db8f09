"""From the optimised plan to what engines, gateways and stores are given."""
