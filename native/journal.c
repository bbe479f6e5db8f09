/* The journal: a Mosquitto plugin that writes every message to a site log before it is confirmed.
 *
 * Mosquitto calls `on_access` and `on_message` for each PUBLISH before it queues the message and
 * before it sends PUBACK or PUBREC. When `on_message` returns success, the message is a whole frame in the log and
 * `committed` covers it: the death of any process, at any moment, does not take it back. With the
 * option `sync` neither does a power failure. A message that cannot be written is never confirmed:
 * the broker waits, and with it its clients.
 *
 * The files are those of docs/design/site-log.md; this is a writer of it, the topic is `$journal`.
 *
 * Options: folder (needed), sync (true or false), min_free_bytes, segment_bytes.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the log is little-endian and written as it is in memory"
#endif

/* From mosquitto.h, which is in another package. */
enum { SUCCESS = 0, UNKNOWN = 13, LOG_NOTICE = 2, LOG_WARNING = 4, LOG_ERROR = 8 };

#define TOPIC "$journal"
#define MAX_TOPIC 65534u
#define MAX_PAYLOAD (16u << 20)
#define MAX_BODY (32u << 20)
#define VERSION 2
#define MARKER 0xFA5246F5u
#define HIGHEST (1ull << 62)
#define RETRY_NS 200000000L
#define SPACE_STEP (256u << 10)
#define NO_SEGMENT UINT64_MAX

struct __attribute__((packed)) header {
    char magic[6];
    uint16_t version;
    uint64_t first;
};

struct __attribute__((packed)) head {
    uint32_t marker, crc, head_crc;
    uint32_t length; /* head_crc is of this and what follows, crc also of head_crc and the records */
    uint64_t position, number;
    uint32_t count;
    uint8_t flags;
    int64_t arrival;
    uint64_t source;
    int64_t epoch;
};

struct __attribute__((packed)) committed {
    uint64_t position, number;
    uint32_t crc;
};

struct __attribute__((packed)) message {
    struct head head;
    uint32_t payload_length;
    uint16_t topic_length;
};

static mosquitto_plugin_id_t *plugin;
static char folder[PATH_MAX - 64];
static int folder_fd = -1, lock_fd = -1, committed_fd = -1, segment_fd = -1;
static uint64_t first, end;                  /* of the open segment; of the log */
static uint64_t number;                      /* of the next record */
static uint64_t unchecked = SPACE_STEP;      /* bytes written since space was looked at */
static uint64_t min_free_bytes = 64u << 20, segment_bytes = 64u << 20;
static bool sync_each, waiting, interrupted;
static uint32_t table[8][256];

/* The message that `on_access` wrote last: until `on_message`, nothing else happens in between. */
static struct written {
    const void *client, *topic, *payload;
} written;

/* ── checksums ──────────────────────────────────────────────────────────────────────────────── */

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xFF];
}

/* zlib's CRC-32, eight bytes at a time; begins and goes on with what it returned, 0 at first. */
static uint32_t crc32_of(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *at = data;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= crc;
        crc = table[7][low & 0xFF] ^ table[6][low >> 8 & 0xFF] ^ table[5][low >> 16 & 0xFF] ^
              table[4][low >> 24] ^ table[3][high & 0xFF] ^ table[2][high >> 8 & 0xFF] ^
              table[1][high >> 16 & 0xFF] ^ table[0][high >> 24];
    }
    while (size--)
        crc = crc >> 8 ^ table[0][(crc ^ *at++) & 0xFF];
    return ~crc;
}

/* ── files ──────────────────────────────────────────────────────────────────────────────────── */

static int failed(const char *what)
{
    mosquitto_log_printf(LOG_ERROR, "journal: %s/%s: %s", folder, what, strerror(errno));
    return -1;
}

static void segment_name(char name[32], uint64_t position)
{
    snprintf(name, 32, "%020llu.seg", (unsigned long long)position);
}

/* All of it or -1, whatever was written before a failure; the same call may be made again. */
static int write_all(int fd, struct iovec *parts, int count, off_t offset)
{
    while (count) {
        ssize_t done = pwritev(fd, parts, count, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        offset += done;
        for (; count && (size_t)done >= parts->iov_len; count--)
            done -= (ssize_t)parts++->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return 0;
}

static int write_at(int fd, const void *data, size_t size, off_t offset)
{
    struct iovec part = {(void *)data, size};
    return write_all(fd, &part, 1, offset);
}

/* A small text file, there whole or not at all. */
static int replace_text(const char *name, const char *text)
{
    char new[64];
    snprintf(new, sizeof new, ".%s.new", name);
    int fd = openat(folder_fd, new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    int bad = write_at(fd, text, strlen(text), 0) || fsync(fd);
    close(fd);
    return bad || renameat(folder_fd, new, folder_fd, name) || fsync(folder_fd) ? -1 : 0;
}

static int store_committed(void)
{
    struct committed now = {end, number, 0};
    now.crc = crc32_of(0, &now, offsetof(struct committed, crc));
    return write_at(committed_fd, &now, sizeof now, 0);
}

/* ── writing ────────────────────────────────────────────────────────────────────────────────── */

/* The open segment is complete: it, its end and what retention has to know are on disk. */
static int settle_segment(void)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%llu\n", (unsigned long long)end);
    snprintf(text + size, sizeof text - (size_t)size, "crc32 %08x\n", crc32_of(0, text, (size_t)size));
    if (fdatasync(segment_fd) || fdatasync(committed_fd) || replace_text("sources", text))
        return -1;
    close(segment_fd);
    segment_fd = -1;
    return 0;
}

/* Begins a segment at the end of the log. A file of that name holds nothing that counts. */
static int begin_segment(void)
{
    char name[32];
    segment_name(name, end);
    int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return -1;
    struct header header = {"FOGLOG", VERSION, end};
    if (write_at(fd, &header, sizeof header, 0) || fsync(folder_fd)) {
        close(fd);
        return -1;
    }
    segment_fd = fd;
    first = end;
    return 0;
}

static bool has_space(uint64_t size)
{
    unchecked += size;
    if (unchecked < SPACE_STEP)
        return true;
    struct statvfs state;
    if (fstatvfs(folder_fd, &state))
        return false;
    if ((uint64_t)state.f_bavail * state.f_frsize < min_free_bytes + size) {
        errno = ENOSPC;
        return false;
    }
    unchecked = 0;
    return true;
}

/* The head of a frame for its place in the log; the rest of the frame are the other parts. */
static void seal(struct iovec parts[4], uint64_t size, uint64_t position)
{
    struct message *message = parts[0].iov_base;
    struct head *head = &message->head;
    head->marker = MARKER;
    head->length = (uint32_t)(size - sizeof *head);
    head->position = position;
    head->number = number;
    head->head_crc = crc32_of(0, &head->length, sizeof *head - offsetof(struct head, length));
    uint32_t crc = crc32_of(0, &head->head_crc, sizeof *message - offsetof(struct head, head_crc));
    for (int i = 1; i < 4; i++)
        crc = crc32_of(crc, parts[i].iov_base, parts[i].iov_len);
    head->crc = crc;
}

/* One frame and the commit of it, or -1 and the log is as it was. */
static int append(struct iovec parts[4], uint64_t size)
{
    if (!has_space(size))
        return -1;
    if (segment_fd >= 0 && end + size - first > segment_bytes && end > first + sizeof(struct header))
        if (settle_segment())
            return -1;
    if (segment_fd < 0 && begin_segment())
        return -1;
    uint64_t before = end, at = end == first ? first + sizeof(struct header) : end;
    struct iovec rest[4];
    seal(parts, size, at);
    memcpy(rest, parts, sizeof rest);
    if (write_all(segment_fd, rest, 4, (off_t)(at - first)) || (sync_each && fdatasync(segment_fd)))
        return -1;
    end = at + size;
    number++;
    if (store_committed()) {
        end = before;
        number--;
        return -1;
    }
    return 0;
}

/* Waits until the message is in the log. A signal (the broker is to end) gives up: then the message
 * is refused and its client cut off, unconfirmed. */
static int append_or_wait(struct iovec parts[4], uint64_t size)
{
    while (append(parts, size)) {
        if (!waiting)
            mosquitto_log_printf(LOG_NOTICE, "journal: clients wait, %s cannot be written: %s",
                                 folder, strerror(errno));
        waiting = true;
        unchecked = SPACE_STEP;
        struct timespec pause = {0, RETRY_NS};
        if (interrupted || nanosleep(&pause, NULL)) {
            interrupted = true;
            return UNKNOWN;
        }
    }
    if (waiting)
        mosquitto_log_printf(LOG_NOTICE, "journal: %s can be written again", folder);
    waiting = false;
    return SUCCESS;
}

/* A message that the log does not take is refused: its client is cut off, unconfirmed. */
static int journal(const char *topic, const void *payload, uint32_t payload_length)
{
    size_t topic_length = topic ? strlen(topic) : 0;
    if (topic_length < 1 || topic_length > MAX_TOPIC || payload_length > MAX_PAYLOAD) {
        mosquitto_log_printf(LOG_WARNING, "journal: refused a message with %zu bytes of topic and %u "
                             "of payload", topic_length, payload_length);
        return UNKNOWN;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct message message = {
        .head = {.flags = 1, .epoch = -1, .count = 1,
                 .arrival = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000},
        .payload_length = payload_length,
        .topic_length = (uint16_t)topic_length,
    };
    struct iovec parts[4] = {{&message, sizeof message}, {(char *)topic, topic_length},
                             {(char *)payload, payload_length}, {"\n", 1}};
    uint64_t size = 0;
    for (int i = 0; i < 4; i++)
        size += parts[i].iov_len;
    return append_or_wait(parts, size);
}

/* A client is about to write: for a PUBLISH `on_message` comes next, for a last will it does not, so
 * the message is written here. Allowing is what the broker does without a list of who may what. */
static int on_access(int event, void *data, void *unused)
{
    (void)event, (void)unused;
    struct mosquitto_evt_acl_check *given = data;
    if (given->access != MOSQ_ACL_WRITE)
        return SUCCESS;
    int bad = journal(given->topic, given->payload, given->payloadlen);
    if (!bad)
        written = (struct written){given->client, given->topic, given->payload};
    return bad;
}

/* Every message comes by here before it is confirmed; it is the one just written, or is written. */
static int on_message(int event, void *data, void *unused)
{
    (void)event, (void)unused;
    struct mosquitto_evt_message *given = data;
    bool done = written.client == given->client && written.topic == given->topic &&
                written.payload == given->payload;
    written = (struct written){0};
    return done ? SUCCESS : journal(given->topic, given->payload, given->payloadlen);
}

/* The broker is back in its loop, so the signal did not mean its end. */
static int on_tick(int event, void *data, void *unused)
{
    (void)event, (void)data, (void)unused;
    interrupted = false;
    return SUCCESS;
}

/* ── opening ────────────────────────────────────────────────────────────────────────────────── */

/* The size of the frame at `at` with a whole head, 0 where there is none. */
static uint64_t frame_size(const char *data, uint64_t size, uint64_t at, uint64_t position)
{
    struct head head;
    if (size - at < sizeof head)
        return 0;
    memcpy(&head, data + at, sizeof head);
    if (head.marker != MARKER || head.position != position + at || head.length > MAX_BODY ||
        head.length > size - at - sizeof head)
        return 0;
    size_t guarded = offsetof(struct head, length);
    if (crc32_of(0, data + at + guarded, sizeof head - guarded) != head.head_crc)
        return 0;
    return sizeof head + head.length;
}

/* Moves the log's end behind the last whole commit of a segment, if that is further. */
static void follow(const char *data, uint64_t size, uint64_t position)
{
    const uint64_t sums = offsetof(struct head, head_crc);
    for (uint64_t at = sizeof(struct header), length; at < size; at += length) {
        const uint32_t marker = MARKER;
        struct head head;
        length = frame_size(data, size, at, position);
        if (!length) {
            const char *next = memmem(data + at + 1, size - at - 1, &marker, sizeof marker);
            length = next ? (uint64_t)(next - data) - at : size - at;
            continue;
        }
        memcpy(&head, data + at, sizeof head);
        bool whole = crc32_of(0, data + at + sums, length - sums) == head.crc;
        if (whole && head.flags & 1 && position + at + length >= end) {
            end = position + at + length;
            number = head.number + head.count;
        }
    }
}

/* The start of the last segment, NO_SEGMENT where there is none. */
static uint64_t last_segment(void)
{
    uint64_t last = NO_SEGMENT;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        size_t digits = strspn(entry->d_name, "0123456789");
        if (digits != 20 || strcmp(entry->d_name + digits, ".seg") ||
            strncmp(entry->d_name, "0922", 4) >= 0)
            continue;
        uint64_t position = strtoull(entry->d_name, NULL, 10);
        last = last == NO_SEGMENT || position > last ? position : last;
    }
    if (listing)
        closedir(listing);
    return last;
}

/* Finds the end of the log and cuts off the frame that was in flight.
 *
 * What `committed` covers is never cut off, and no position is given out twice: where something of it
 * cannot be read or is missing, the log goes on behind it, and readers report it. Without `committed`
 * the last commit that can be read is the end. */
static int repair(bool known)
{
    char name[32];
    struct stat state;
    first = last_segment();
    if (first == NO_SEGMENT)
        return 0;
    segment_name(name, first);
    segment_fd = openat(folder_fd, name, O_RDWR | O_CLOEXEC);
    if (segment_fd < 0 || fstat(segment_fd, &state))
        return failed(name);
    uint64_t size = (uint64_t)state.st_size;
    if (size) {
        char *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, segment_fd, 0);
        if (data == MAP_FAILED)
            return failed(name);
        const struct header old = {"FOGLOG", 1, first};
        bool is_old = size >= sizeof old && !memcmp(data, &old, sizeof old);
        if (!is_old)
            follow(data, size, first);
        munmap(data, size);
        if (is_old) {
            mosquitto_log_printf(LOG_ERROR, "journal: %s is a log of format 1, and only format 2 can be "
                                 "read: let the earlier version finish with it, or move it away", folder);
            return -1;
        }
    }
    if (end > first + sizeof(struct header) && end <= first + size)
        return ftruncate(segment_fd, (off_t)(end - first)) ? failed(name) : 0;
    close(segment_fd);
    segment_fd = -1;
    if (end > first) {
        mosquitto_log_printf(LOG_WARNING, "journal: %s/%s is too short; the log goes on at position %llu",
                             folder, name, (unsigned long long)end);
        return 0;
    }
    if (unlinkat(folder_fd, name, 0))
        return failed(name);
    return known && end == first ? 0 : repair(known);
}

static int claim_topic(void)
{
    char text[sizeof TOPIC + 1] = "";
    int fd = openat(folder_fd, "topic", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return replace_text("topic", TOPIC);
    if (size == sizeof TOPIC - 1 && !memcmp(text, TOPIC, sizeof TOPIC - 1))
        return 0;
    mosquitto_log_printf(LOG_WARNING, "journal: %s/topic was damaged and is written anew", folder);
    return replace_text("topic", TOPIC);
}

static int make_folder(void)
{
    for (char *at = folder + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(folder, 0755);
            *at = '/';
        }
    mkdir(folder, 0755);
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder_fd < 0 ? -1 : 0;
}

static int open_log(void)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct committed claimed[2];
    if (make_folder())
        return failed("");
    lock_fd = openat(folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_fd < 0 || fcntl(lock_fd, F_SETLK, &whole))
        return failed("lock");
    if (claim_topic())
        return failed("topic");
    committed_fd = openat(folder_fd, "committed", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (committed_fd < 0)
        return failed("committed");
    bool known = pread(committed_fd, claimed, sizeof claimed, 0) == sizeof *claimed &&
                 crc32_of(0, claimed, offsetof(struct committed, crc)) == claimed->crc &&
                 claimed->position < HIGHEST;
    if (!known && last_segment() != NO_SEGMENT)
        mosquitto_log_printf(LOG_WARNING, "journal: %s/committed is damaged; the end is looked for",
                             folder);
    if (known) {
        end = claimed->position;
        number = claimed->number;
    }
    if (repair(known))
        return -1;
    if (ftruncate(committed_fd, sizeof *claimed) || store_committed() || fsync(committed_fd))
        return failed("committed");
    return 0;
}

static int read_options(const struct mosquitto_opt *options, int count)
{
    for (int i = 0; i < count; i++) {
        const char *key = options[i].key, *value = options[i].value;
        if (!strcmp(key, "folder") && strlen(value) < sizeof folder)
            strcpy(folder, value);
        else if (!strcmp(key, "sync"))
            sync_each = !strcmp(value, "true");
        else if (!strcmp(key, "min_free_bytes"))
            min_free_bytes = strtoull(value, NULL, 10);
        else if (!strcmp(key, "segment_bytes"))
            segment_bytes = strtoull(value, NULL, 10);
        else
            mosquitto_log_printf(LOG_WARNING, "journal: the option %s is of no use", key);
    }
    if (*folder)
        return 0;
    mosquitto_log_printf(LOG_ERROR, "journal: plugin_opt_folder is needed");
    return -1;
}

/* ── what the broker calls ──────────────────────────────────────────────────────────────────── */

int mosquitto_plugin_version(int count, const int *versions)
{
    for (int i = 0; i < count; i++)
        if (versions[i] == 5)
            return 5;
    return -1;
}

int mosquitto_plugin_init(mosquitto_plugin_id_t *identifier, void **data,
                          struct mosquitto_opt *options, int count)
{
    (void)data;
    plugin = identifier;
    make_table();
    /* A limit on the size of files is a full disk, not a reason to die. */
    signal(SIGXFSZ, SIG_IGN);
    if (read_options(options, count) || open_log())
        return UNKNOWN;
    return mosquitto_callback_register(plugin, MOSQ_EVT_TICK, on_tick, NULL, NULL) ||
           mosquitto_callback_register(plugin, MOSQ_EVT_ACL_CHECK, on_access, NULL, NULL) ||
           mosquitto_callback_register(plugin, MOSQ_EVT_MESSAGE, on_message, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *data, struct mosquitto_opt *options, int count)
{
    (void)data, (void)options, (void)count;
    if (!plugin || committed_fd < 0)
        return SUCCESS;
    mosquitto_callback_unregister(plugin, MOSQ_EVT_MESSAGE, on_message, NULL);
    mosquitto_callback_unregister(plugin, MOSQ_EVT_ACL_CHECK, on_access, NULL);
    mosquitto_callback_unregister(plugin, MOSQ_EVT_TICK, on_tick, NULL);
    if (segment_fd >= 0) {
        fdatasync(segment_fd);
        close(segment_fd);
    }
    fdatasync(committed_fd);
    close(committed_fd);
    close(lock_fd);
    close(folder_fd);
    return SUCCESS;
}
