/* Who may read what: a Mosquitto plugin that keeps restricted topics to those who may have them.
 *
 * Stands before the journal, which allows everything: what is refused here is not written there.
 * The rules are a file (fogline.broker.mosquitto.access), replaced as a whole whenever they change. Its time is
 * looked at before each message that is published and each subscription, so a rule holds for all that
 * is published after the file was written. A file that cannot be read leaves the rules as they were.
 *
 *     logins <TAB> name …                      whose passwords count
 *     site or all <TAB> topic <TAB> reader …   who may write it, and which logins may read it
 *
 * A backslash before n, t, r and itself stands for line feed, tab, carriage return and backslash.
 *
 * Options: file (needed), site (needed: the login that may do everything), open (true: others than
 * the logins come in under any name, as at a broker without passwords).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mosquitto_broker.h>
#include <mosquitto_plugin.h>

/* From mosquitto.h, which is in another package. */
enum { SUCCESS = 0, DENIED = 12, UNKNOWN = 13, DEFER = 17, LOG_ERROR = 8 };

/* Each name ends with a zero byte, and the next one begins behind it. */
struct names {
    char *first;
    size_t count;
};

struct line {
    char *topic;
    struct names readers;
    bool all_write;
};

struct rules {
    char *text;
    struct line *lines;
    size_t count;
    struct names logins;
};

static mosquitto_plugin_id_t *plugin;
static char file[PATH_MAX], site[256];
static bool open_to_all;
static struct rules rules;
static struct stat seen;

/* ── reading the rules ──────────────────────────────────────────────────────────────────────── */

/* The file with room for one more byte, or nothing; `state` is of what was read. */
static char *read_file(struct stat *state, size_t *size)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = NULL;
    if (!fstat(fd, state) && (text = malloc((size_t)state->st_size + 1))) {
        size_t done = 0;
        ssize_t got = 1;
        while (done < (size_t)state->st_size && got > 0)
            if ((got = read(fd, text + done, (size_t)state->st_size - done)) > 0)
                done += (size_t)got;
        *size = done;
    }
    close(fd);
    return text;
}

/* One field in place, ended with a zero byte; the next one begins at what is returned. `more` tells
 * whether that is in the same line. */
static char *take_field(char *at, char *end, bool *more)
{
    char *to = at;
    while (at < end && *at != '\t' && *at != '\n') {
        if (*at == '\\' && at + 1 < end) {
            at++;
            *to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at == 'r' ? '\r' : *at;
            at++;
        } else {
            *to++ = *at++;
        }
    }
    *more = at < end && *at == '\t';
    char *next = at < end ? at + 1 : at;
    *to = 0;
    return next;
}

static int by_topic(const void *one, const void *other)
{
    return strcmp(((const struct line *)one)->topic, ((const struct line *)other)->topic);
}

/* The names of the rest of a line, moved together so that each is behind the one before. */
static char *take_names(char *at, char *end, bool more, struct names *names)
{
    char *to = at;
    *names = (struct names){at, 0};
    while (more) {
        char *name = at;
        at = take_field(at, end, &more);
        size_t length = strlen(name);
        if (!length)
            continue;
        memmove(to, name, length + 1);
        to += length + 1;
        names->count++;
    }
    return at;
}

/* Takes the text over, whatever is returned. */
static bool parse(char *text, size_t size, struct rules *found)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    *found = (struct rules){.text = text, .lines = calloc(lines, sizeof *found->lines)};
    if (!found->lines)
        return false;
    char *at = text, *end = text + size;
    while (at < end) {
        bool more;
        char *kind = at;
        at = take_field(at, end, &more);
        if (!strcmp(kind, "logins")) {
            at = take_names(at, end, more, &found->logins);
            continue;
        }
        if (!more || (strcmp(kind, "all") && strcmp(kind, "site")))
            return false;
        struct line *line = &found->lines[found->count++];
        line->all_write = *kind == 'a';
        line->topic = at;
        at = take_field(at, end, &more);
        at = take_names(at, end, more, &line->readers);
    }
    qsort(found->lines, found->count, sizeof *found->lines, by_topic);
    return found->logins.count > 0;
}

static void forget(struct rules *old)
{
    free(old->text);
    free(old->lines);
    *old = (struct rules){0};
}

static int load(void)
{
    struct stat state;
    struct rules new = {0};
    size_t size = 0;
    errno = 0;
    char *text = read_file(&state, &size);
    if (!text || !parse(text, size, &new)) {
        mosquitto_log_printf(LOG_ERROR, "access: %s cannot be read: %s", file,
                             errno ? strerror(errno) : "it makes no sense");
        forget(&new);
        return -1;
    }
    forget(&rules);
    rules = new;
    seen = state;
    return 0;
}

static void refresh(void)
{
    struct stat now;
    if (stat(file, &now))
        return;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    if (load())
        seen = now;
}

/* ── what the broker asks ───────────────────────────────────────────────────────────────────── */

static bool is_among(const struct names *names, const char *name)
{
    const char *at = names->first;
    for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
        if (!strcmp(at, name))
            return true;
    return false;
}

/* Deferring leaves it to the journal, which allows it. */
static int on_access(int event, void *data, void *unused)
{
    (void)event, (void)unused;
    struct mosquitto_evt_acl_check *given = data;
    if (given->access != MOSQ_ACL_READ)
        refresh();
    if (given->access != MOSQ_ACL_READ && given->access != MOSQ_ACL_WRITE)
        return DEFER;
    struct line wanted = {.topic = (char *)given->topic};
    struct line *rule =
        given->topic ? bsearch(&wanted, rules.lines, rules.count, sizeof wanted, by_topic) : NULL;
    const char *user = mosquitto_client_username(given->client);
    if (!rule || (user && !strcmp(user, site)))
        return DEFER;
    if (given->access == MOSQ_ACL_WRITE)
        return rule->all_write ? DEFER : DENIED;
    return user && is_among(&rule->readers, user) ? DEFER : DENIED;
}

/* At an open broker the passwords of the logins count, and no others. */
static int on_login(int event, void *data, void *unused)
{
    (void)event, (void)unused;
    struct mosquitto_evt_basic_auth *given = data;
    return !given->username || is_among(&rules.logins, given->username) ? DEFER : SUCCESS;
}

static int read_options(const struct mosquitto_opt *options, int count)
{
    for (int i = 0; i < count; i++) {
        const char *key = options[i].key, *value = options[i].value;
        if (!strcmp(key, "file") && strlen(value) < sizeof file)
            strcpy(file, value);
        else if (!strcmp(key, "site") && strlen(value) < sizeof site)
            strcpy(site, value);
        else if (!strcmp(key, "open"))
            open_to_all = !strcmp(value, "true");
    }
    if (*file && *site)
        return 0;
    mosquitto_log_printf(LOG_ERROR, "access: plugin_opt_file and plugin_opt_site are needed");
    return -1;
}

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
    if (read_options(options, count) || load())
        return UNKNOWN;
    if (open_to_all && mosquitto_callback_register(plugin, MOSQ_EVT_BASIC_AUTH, on_login, NULL, NULL))
        return UNKNOWN;
    return mosquitto_callback_register(plugin, MOSQ_EVT_ACL_CHECK, on_access, NULL, NULL);
}

int mosquitto_plugin_cleanup(void *data, struct mosquitto_opt *options, int count)
{
    (void)data, (void)options, (void)count;
    if (plugin) {
        mosquitto_callback_unregister(plugin, MOSQ_EVT_ACL_CHECK, on_access, NULL);
        if (open_to_all)
            mosquitto_callback_unregister(plugin, MOSQ_EVT_BASIC_AUTH, on_login, NULL);
    }
    forget(&rules);
    return SUCCESS;
}
