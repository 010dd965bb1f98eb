/* SPDX-License-Identifier: MIT */
/* Every other kind of file, through FFmpeg's libraries:
 *
 *     input - AVIO - demuxer, by content - packets of the best sound track - decoder - frames - sink
 *
 * Samples are taken as the decoder gives them; mixing and resampling are ours. A packet that cannot be decoded becomes
 * silence of its length, and so does a gap between times, so that what follows stays where it belongs. */
#include "media/media_impl.h"

#ifndef SOTTO_FFMPEG

bool sotto_audio_has_ffmpeg(void) { return false; }

enum sotto_status sotto_i_ffmpeg_read(struct media_input * in, struct media_sink * sink) {
    (void)sink;
    return sotto_fail(SOTTO_E_UNSUPPORTED, "sotto_audio_load: %s: this build of sotto has no FFmpeg", in->name);
}

#else

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/avutil.h>

#include "sotto/log.h"

#define IO_BLOCK      32768
#define LOW_SCORE     25 /* of probing: hardly more than a guess */
#define LISTS         "hls,applehttp,concat,dash,imf,rtsp,sdp,webm_dash_manifest"
#define MAX_SILENCE   600  /* seconds of silence put in between */
#define MAX_MP3_FRAME 2048 /* bytes; 1730 in fact */
#define MAX_HOLE      2    /* seconds between two packets of a stream without times; more is no sound, but a picture */
#define TINY_GAP(r)   ((r) / 10) /* samples; less is how containers round */

struct reader {
    struct media_input * in;
    struct media_sink * sink;
    AVIOContext * io;
    AVFormatContext * format;
    AVCodecContext * codec;
    AVStream * stream;
    AVPacket * packet;
    AVFrame * frame;
    uint8_t * whole; /* the input, where it has to be held */
    size_t n_whole, cap_whole, at_whole;
    int64_t next_byte;  /* behind the last packet */
    int frame_size;     /* of the last packet that is a frame and no more, in bytes */
    int score;          /* how sure the demuxer is */
    int frame_samples;  /* of the last frame */
    uint64_t put;       /* samples given to the sink, at its present rate */
    uint64_t silent;    /* those of them that are silence in place of sound */
    uint64_t good, bad; /* packets */
    uint64_t gaps;      /* between them */
};

bool sotto_audio_has_ffmpeg(void) { return true; }

/* ---- messages ---- */

static void log_line(void * object, int level, const char * format, va_list args) {
    sotto_log_callback callback;
    sotto_log_get(&callback, NULL);
    if (level > AV_LOG_WARNING || callback == NULL)
        return;
    char line[1024];
    int prefix = 1;
    av_log_format_line2(object, level, format, args, line, sizeof(line), &prefix);
    sotto_log(SOTTO_LOG_DEBUG, "ffmpeg: %s", line);
}

static void take_log(void) { av_log_set_callback(log_line); }

/* `error` as FFmpeg's calls return it; `otherwise` for all that has no status of its own. */
static enum sotto_status failed(const struct reader * r, int error, enum sotto_status otherwise, const char * what) {
    if (r->in->failed != SOTTO_OK)
        return r->in->failed; /* its message is there already */
    if (error == AVERROR(ENOMEM))
        return sotto_fail(SOTTO_E_MEMORY, "sotto_audio_load: %s: FFmpeg got no memory", r->in->name);
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    av_strerror(error, text, sizeof(text));
    return sotto_fail(otherwise, "sotto_audio_load: %s: %s: %s", r->in->name, what, text);
}

/* ---- bytes ---- */

static int read_input(void * opaque, uint8_t * dst, int n) {
    struct reader * r = opaque;
    size_t got;
    if (sotto_i_media_read(r->in, dst, (size_t)n, &got) != SOTTO_OK)
        return AVERROR(EIO);
    return got > 0 ? (int)got : AVERROR_EOF;
}

static int read_whole(void * opaque, uint8_t * dst, int n) {
    struct reader * r = opaque;
    size_t left = r->n_whole - r->at_whole;
    size_t got = left < (size_t)n ? left : (size_t)n;
    memcpy(dst, r->whole + r->at_whole, got);
    r->at_whole += got;
    return got > 0 ? (int)got : AVERROR_EOF;
}

static int64_t target(int64_t offset, int whence, uint64_t at, uint64_t size) {
    int64_t base = whence == SEEK_CUR ? (int64_t)at : whence == SEEK_END ? (int64_t)size : 0;
    return offset > INT64_MAX - base || offset < -base ? -1 : base + offset;
}

static int64_t seek_input(void * opaque, int64_t offset, int whence) {
    struct reader * r = opaque;
    if ((whence & AVSEEK_SIZE) != 0)
        return (int64_t)r->in->size;
    int64_t to = target(offset, whence & ~AVSEEK_FORCE, r->in->at, r->in->size);
    return to >= 0 && sotto_i_media_seek(r->in, (uint64_t)to) ? to : AVERROR(EINVAL);
}

static int64_t seek_whole(void * opaque, int64_t offset, int whence) {
    struct reader * r = opaque;
    if ((whence & AVSEEK_SIZE) != 0)
        return (int64_t)r->n_whole;
    int64_t to = target(offset, whence & ~AVSEEK_FORCE, r->at_whole, r->n_whole);
    if (to < 0 || (uint64_t)to > r->n_whole)
        return AVERROR(EINVAL);
    r->at_whole = (size_t)to;
    return to;
}

/* MP4 and its kin, whose table of contents may come last? */
static bool needs_seeking(const struct media_input * in) {
    static const char names[][5] = { "ftyp", "moov", "mdat", "free", "skip", "wide", "pnot" };
    bool found = false;
    for (size_t i = 0; in->n_head >= 8 && i < sizeof(names) / sizeof(names[0]); i++)
        found = found || memcmp(in->head + 4, names[i], 4) == 0;
    return found;
}

static enum sotto_status hold_whole(struct reader * r) {
    const struct sotto_allocator * allocator = r->sink->allocator;
    size_t got = 1;
    while (got > 0) {
        if (r->n_whole == r->cap_whole) {
            size_t cap = r->cap_whole + r->cap_whole / 2 + 16 * IO_BLOCK;
            if (cap > INT_MAX)
                return sotto_fail(SOTTO_E_LIMIT,
                                  "sotto_audio_load: %s: more than 1 GiB of MP4 out of a pipe; "
                                  "give it as a file",
                                  r->in->name);
            uint8_t * whole = sotto_realloc(allocator, r->whole, r->cap_whole, cap, 1);
            if (whole == NULL)
                return SOTTO_E_MEMORY;
            r->whole = whole;
            r->cap_whole = cap;
        }
        enum sotto_status status = sotto_i_media_read(r->in, r->whole + r->n_whole, r->cap_whole - r->n_whole, &got);
        if (status != SOTTO_OK)
            return status;
        r->n_whole += got;
    }
    return SOTTO_OK;
}

static enum sotto_status open_io(struct reader * r) {
    bool seeks = r->in->seek != NULL;
    bool held = !seeks && needs_seeking(r->in);
    enum sotto_status status = held ? hold_whole(r) : SOTTO_OK;
    if (status != SOTTO_OK)
        return status;
    unsigned char * buffer = av_malloc(IO_BLOCK);
    if (buffer != NULL)
        r->io = avio_alloc_context(buffer, IO_BLOCK, 0, r, held ? read_whole : read_input, NULL,
                                   held    ? seek_whole
                                   : seeks ? seek_input
                                           : NULL);
    if (r->io == NULL) {
        av_free(buffer);
        return failed(r, AVERROR(ENOMEM), SOTTO_E_MEMORY, "");
    }
    return SOTTO_OK;
}

/* ---- opening ---- */

static int refuse_open(AVFormatContext * format, AVIOContext ** io, const char * url, int flags,
                       AVDictionary ** options) {
    (void)format;
    (void)url;
    (void)flags;
    (void)options;
    *io = NULL;
    return AVERROR(EPERM);
}

static enum sotto_status open_format(struct reader * r) {
    const AVInputFormat * kind = NULL;
    int score = av_probe_input_buffer2(r->io, &kind, "", NULL, 0, 0);
    bool riff = r->in->n_head >= 4 && memcmp(r->in->head, "RIFF", 4) == 0;
    if (score < 0)
        return failed(r, score, riff ? SOTTO_E_AUDIO_CORRUPT : SOTTO_E_AUDIO_FORMAT, "no kind of file that is known");
    r->score = score;
    if (av_match_name(kind->name, LISTS) != 0)
        return sotto_fail(SOTTO_E_AUDIO_FORMAT, "sotto_audio_load: %s (%s) only names other files; give those",
                          r->in->name, kind->long_name);
    r->format = avformat_alloc_context();
    if (r->format == NULL)
        return failed(r, AVERROR(ENOMEM), SOTTO_E_MEMORY, "");
    r->format->pb = r->io;
    r->format->io_open = refuse_open;
    AVDictionary * options = NULL;
    av_dict_set(&options, "protocol_whitelist", "none", 0);
    int error = avformat_open_input(&r->format, "", kind, &options); /* frees the context when it fails */
    av_dict_free(&options);
    enum sotto_status guess = score <= LOW_SCORE ? SOTTO_E_AUDIO_FORMAT : SOTTO_E_AUDIO_CORRUPT;
    if (error >= 0)
        error = avformat_find_stream_info(r->format, NULL);
    return error < 0 ? failed(r, error, guess, kind->long_name) : SOTTO_OK;
}

static enum sotto_status no_stream(const struct reader * r) {
    for (unsigned i = 0; i < r->format->nb_streams; i++) {
        const AVCodecParameters * p = r->format->streams[i]->codecpar;
        if (p->codec_type == AVMEDIA_TYPE_AUDIO)
            return sotto_fail(SOTTO_E_AUDIO_CODEC, "sotto_audio_load: %s: codec %s is not read; convert it",
                              r->in->name, avcodec_get_name(p->codec_id));
    }
    if (r->score <= LOW_SCORE)
        return sotto_fail(SOTTO_E_AUDIO_FORMAT, "sotto_audio_load: %s is no sound or video that is known", r->in->name);
    return sotto_fail(SOTTO_E_AUDIO_EMPTY, "sotto_audio_load: %s (%s) has no sound track", r->in->name,
                      r->format->iformat->long_name);
}

static enum sotto_status open_codec(struct reader * r) {
    const AVCodec * codec = NULL;
    int index = av_find_best_stream(r->format, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
    if (index < 0 || codec == NULL)
        return no_stream(r);
    for (unsigned i = 0; i < r->format->nb_streams; i++)
        r->format->streams[i]->discard = i == (unsigned)index ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    r->stream = r->format->streams[index];
    r->codec = avcodec_alloc_context3(codec);
    r->packet = av_packet_alloc();
    r->frame = av_frame_alloc();
    if (r->codec == NULL || r->packet == NULL || r->frame == NULL)
        return failed(r, AVERROR(ENOMEM), SOTTO_E_MEMORY, "");
    int error = avcodec_parameters_to_context(r->codec, r->stream->codecpar);
    r->codec->pkt_timebase = r->stream->time_base;
    r->codec->thread_count = 1;
    if (error >= 0)
        error = avcodec_open2(r->codec, codec, NULL);
    return error < 0 ? failed(r, error, SOTTO_E_AUDIO_CORRUPT, codec->name) : SOTTO_OK;
}

/* ---- decoding ---- */

static bool coding_of(enum AVSampleFormat format, enum sotto_sample_coding * coding) {
    switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8: *coding = SOTTO_SAMPLE_U8; return true;
    case AV_SAMPLE_FMT_S16: *coding = SOTTO_SAMPLE_S16; return true;
    case AV_SAMPLE_FMT_S32: *coding = SOTTO_SAMPLE_S32; return true;
    case AV_SAMPLE_FMT_S64: *coding = SOTTO_SAMPLE_S64; return true;
    case AV_SAMPLE_FMT_FLT: *coding = SOTTO_SAMPLE_F32; return true;
    case AV_SAMPLE_FMT_DBL: *coding = SOTTO_SAMPLE_F64; return true;
    default: return false;
    }
}

/* A small file cannot ask for hours of it: ten minutes, and as much as there is sound. */
static enum sotto_status put_silence(struct reader * r, int64_t n) {
    int64_t sound = (int64_t)(r->put - r->silent);
    if (n <= 0 || n > (int64_t)MAX_SILENCE * r->sink->rate + sound - (int64_t)r->silent)
        return SOTTO_OK;
    r->put += (uint64_t)n;
    r->silent += (uint64_t)n;
    return sotto_i_sink_silence(r->sink, (uint64_t)n);
}

/* Silence up to where the frame belongs. */
static enum sotto_status fill_gap(struct reader * r) {
    int64_t time = r->frame->best_effort_timestamp;
    if (time == AV_NOPTS_VALUE)
        return SOTTO_OK;
    AVRational samples = { 1, r->sink->rate };
    int64_t begin =
        r->format->start_time == AV_NOPTS_VALUE ? 0 : av_rescale_q(r->format->start_time, AV_TIME_BASE_Q, samples);
    int64_t at = av_rescale_q(time, r->stream->time_base, samples);
    if (at < begin || at > INT64_MAX / 2 || begin < -(INT64_MAX / 2))
        return SOTTO_OK;
    int64_t gap = at - begin - (int64_t)r->put;
    if (gap <= TINY_GAP(r->sink->rate))
        return SOTTO_OK;
    r->gaps += r->put > 0;
    return put_silence(r, gap);
}

static enum sotto_status put_frame(struct reader * r) {
    const AVFrame * f = r->frame;
    enum sotto_sample_coding coding;
    if (!coding_of((enum AVSampleFormat)f->format, &coding))
        return sotto_fail(SOTTO_E_AUDIO_CODEC, "sotto_audio_load: %s: FFmpeg's sample format %d is not read",
                          r->in->name, f->format);
    int channels = f->ch_layout.nb_channels;
    int before = r->sink->rate;
    enum sotto_status status = sotto_i_sink_begin(r->sink, f->sample_rate, channels);
    if (status != SOTTO_OK)
        return status;
    if (before != 0 && before != f->sample_rate) {
        r->put = (uint64_t)av_rescale((int64_t)r->put, f->sample_rate, before);
        r->silent = (uint64_t)av_rescale((int64_t)r->silent, f->sample_rate, before);
    }
    status = fill_gap(r);
    const uint8_t * planes[MEDIA_MAX_CHANNELS];
    bool planar = av_sample_fmt_is_planar((enum AVSampleFormat)f->format) != 0;
    size_t width = sotto_i_pcm_width(coding);
    for (int c = 0; c < channels; c++)
        planes[c] = planar ? f->extended_data[c] : f->extended_data[0] + (size_t)c * width;
    if (status == SOTTO_OK)
        status = sotto_i_sink_put(r->sink, coding, sotto_i_pcm_host_is_big(), planes,
                                  planar ? width : width * (size_t)channels, channels, (size_t)f->nb_samples);
    r->frame_samples = f->nb_samples;
    r->put += (uint64_t)f->nb_samples;
    return status;
}

static enum sotto_status put_damage(struct reader * r, const AVPacket * packet) {
    r->bad++;
    if (r->sink->rate == 0)
        return SOTTO_OK;
    int64_t n = r->frame_samples;
    if (packet != NULL && packet->duration > 0)
        n = av_rescale_q(packet->duration, r->stream->time_base, (AVRational){ 1, r->sink->rate });
    return put_silence(r, n);
}

/* MP3 and ADTS have no times, and what is damaged in them lies between packets or in front of one, which is then larger
 * than any frame: silence for as long as whole packets of that size would last. */
static enum sotto_status fill_hole(struct reader * r) {
    const AVPacket * p = r->packet;
    bool large = p->size > MAX_MP3_FRAME && strcmp(r->format->iformat->name, "mp3") == 0;
    int64_t hole = r->next_byte > 0 && p->pos > r->next_byte ? p->pos - r->next_byte : 0;
    hole += large && r->frame_size > 0 ? p->size - r->frame_size : 0;
    r->next_byte = p->pos < 0 ? 0 : p->pos + p->size;
    r->frame_size = large ? r->frame_size : p->size;
    if (hole < r->frame_size || r->frame_size == 0 || r->sink->rate == 0 || p->duration <= 0 ||
        av_match_name(r->format->iformat->name, "mp3,aac") == 0)
        return SOTTO_OK;
    int64_t length = av_rescale_q(p->duration, r->stream->time_base, (AVRational){ 1, r->sink->rate });
    int64_t n = av_rescale(length, hole, r->frame_size);
    if (n > (int64_t)MAX_HOLE * r->sink->rate)
        return SOTTO_OK;
    r->bad++;
    return put_silence(r, n);
}

/* Decode a packet, or with NULL what the decoder still holds. */
static enum sotto_status decode(struct reader * r, const AVPacket * packet) {
    int error = avcodec_send_packet(r->codec, packet);
    bool any = error >= 0;
    while (error >= 0) {
        error = avcodec_receive_frame(r->codec, r->frame);
        if (error < 0)
            break;
        enum sotto_status status = put_frame(r);
        av_frame_unref(r->frame);
        if (status != SOTTO_OK)
            return status;
    }
    if (error == AVERROR(ENOMEM))
        return failed(r, error, SOTTO_E_MEMORY, "");
    if (error != AVERROR(EAGAIN) && error != AVERROR_EOF)
        return put_damage(r, packet);
    r->good += any && packet != NULL;
    return SOTTO_OK;
}

static enum sotto_status decode_all(struct reader * r) {
    enum sotto_status status = SOTTO_OK;
    int error = 0;
    while (status == SOTTO_OK && (error = av_read_frame(r->format, r->packet)) >= 0) {
        status = sotto_i_media_abort(r->in);
        if (status == SOTTO_OK && r->packet->stream_index == r->stream->index) {
            status = fill_hole(r);
            if (status == SOTTO_OK)
                status = decode(r, r->packet);
        }
        av_packet_unref(r->packet);
    }
    if (status != SOTTO_OK)
        return status;
    if (r->in->failed != SOTTO_OK || error == AVERROR(ENOMEM))
        return failed(r, error, SOTTO_E_IO, "");
    if (error != AVERROR_EOF)
        sotto_log(SOTTO_LOG_WARN, "sotto_audio_load: %s is damaged; it is read as far as it goes\n", r->in->name);
    return decode(r, NULL);
}

static enum sotto_status judge(const struct reader * r) {
    if (r->bad + r->gaps > 0)
        sotto_log(SOTTO_LOG_WARN, "sotto_audio_load: %s: %llu damaged or missing pieces became silence\n", r->in->name,
                  (unsigned long long)(r->bad + r->gaps));
    if (r->bad <= r->good)
        return SOTTO_OK;
    return sotto_fail(r->score <= LOW_SCORE ? SOTTO_E_AUDIO_FORMAT : SOTTO_E_AUDIO_CORRUPT,
                      "sotto_audio_load: %s (%s): %llu of %llu pieces cannot be decoded", r->in->name,
                      r->format->iformat->long_name, (unsigned long long)r->bad,
                      (unsigned long long)(r->bad + r->good));
}

static void close_all(struct reader * r) {
    av_frame_free(&r->frame);
    av_packet_free(&r->packet);
    avcodec_free_context(&r->codec);
    avformat_close_input(&r->format);
    if (r->io != NULL)
        av_freep(&r->io->buffer);
    avio_context_free(&r->io);
    sotto_mfree(r->sink->allocator, r->whole, r->cap_whole, 1);
}

enum sotto_status sotto_i_ffmpeg_read(struct media_input * in, struct media_sink * sink) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, take_log);
    if (in->n_head < 12)
        return sotto_fail(SOTTO_E_AUDIO_FORMAT, "sotto_audio_load: %s: %zu bytes are no sound that is known%s",
                          in->name, in->n_head, in->n_head == 0 ? " (it is empty)" : "");
    struct reader r = { .in = in, .sink = sink };
    enum sotto_status status = open_io(&r);
    if (status == SOTTO_OK)
        status = open_format(&r);
    if (status == SOTTO_OK)
        status = in->failed;
    if (status == SOTTO_OK)
        status = open_codec(&r);
    if (status == SOTTO_OK)
        status = decode_all(&r);
    if (status == SOTTO_OK)
        status = judge(&r);
    close_all(&r);
    return status;
}

#endif
