"""Records on their way from log to log, within a site and between sites, exactly once.

    identity   every log has a number of its own
    batch      how records travel: pieces of a log, each with the position behind it
    sender     a log on its way to a broker
    receiver   which records of what arrives a log still needs
    inlet      a log that takes records from several sides
    copier     a log on its way into other logs of the same site

A log stores what it gets under a number made of the origin's and the topic, with the position
behind it as the epoch, in the commit that stores the records. So what comes again is recognised,
however it was cut, and no other account has to be kept.
"""

from fogline.links.batch import PREFIX, BadBatchError, LinkBatch, Piece, decode, encode
from fogline.links.copier import Copier, Copy
from fogline.links.identity import number_of, source_of
from fogline.links.inlet import BadLinks, Inlet
from fogline.links.receiver import Delivery, LogPart, Rejected, missing_parts, unpack
from fogline.links.sender import Outlet, pack_batches, pack_renamed, plain
from fogline.links.start_position import END, START, starting_position

__all__ = [
    "END",
    "PREFIX",
    "START",
    "BadBatchError",
    "BadLinks",
    "Copier",
    "Copy",
    "Delivery",
    "Inlet",
    "LinkBatch",
    "LogPart",
    "Outlet",
    "Piece",
    "Rejected",
    "decode",
    "encode",
    "missing_parts",
    "number_of",
    "pack_batches",
    "pack_renamed",
    "plain",
    "source_of",
    "starting_position",
    "unpack",
]
