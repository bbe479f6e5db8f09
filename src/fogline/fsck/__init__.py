"""`fogline fsck`: looks at the files of a site, coordinator or gateway and changes none of them."""
