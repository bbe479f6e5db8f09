"""The gateway alone."""

from fogline.gateway.run import main

main()
