/* Asynchronous in-order queues and events. Interface "pgr.queue"; without it all is synchronous. */
#ifndef PLUGRAD_PLUGIN_API_QUEUE_H
#define PLUGRAD_PLUGIN_API_QUEUE_H

#include "plugrad/plugin_api/runner.h"

typedef struct pgr_event pgr_event;

typedef struct pgr_queue_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] */
  pgr_status (*create)(pgr_device *device, pgr_queue **out, pgr_error *error);
  /* [serial per queue] Waits for its work. Accepts NULL, never fails. */
  void (*destroy)(pgr_device *device, pgr_queue *queue);
  /* [serial per queue] Returns when the queue is empty. */
  pgr_status (*finish)(pgr_device *device, pgr_queue *queue, pgr_error *error);
  /* [serial per queue] An event that is reached when the queue's work so far is done. */
  pgr_status (*record)(pgr_device *device, pgr_queue *queue, pgr_event **out, pgr_error *error);
  /* [serial per queue] Later work of the queue starts after the event. */
  pgr_status (*wait)(pgr_device *device, pgr_queue *queue, pgr_event *event, pgr_error *error);
  /* [any] Blocks; timeout_ns UINT64_MAX is for ever. TIMED_OUT when it was not reached. */
  pgr_status (*event_wait)(pgr_device *device, pgr_event *event, uint64_t timeout_ns,
                           pgr_error *error);
  /* [any] Device time in ns when it was reached; NOT_READY before. (optional) */
  pgr_status (*event_time)(pgr_device *device, pgr_event *event, uint64_t *out_ns,
                           pgr_error *error);
  /* [any] Accepts NULL, never fails. Waits queued on it stay; an event may outlive its queue. */
  void (*event_destroy)(pgr_device *device, pgr_event *event);
} pgr_queue_api;

/* One number that the device counts: bytes read, cycles stalled. */
typedef struct pgr_counter {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_string name; /* lives as long as the device handle; so does unit */
  pgr_string unit; /* "bytes", "cycles", "1" */
  uint64_t value;  /* since the device was opened */
} pgr_counter;

/* Device time and counters. Interface "pgr.profile"; event_time of "pgr.queue" gives times of this
   clock. */
typedef struct pgr_profile_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] The device's clock and the host's CLOCK_MONOTONIC at one moment, and by how much the pair
     may be off; all in ns. */
  pgr_status (*calibrate)(pgr_device *device, uint64_t *out_device_ns, uint64_t *out_host_ns,
                          uint64_t *out_error_ns, pgr_error *error);
  /* [any] Counter number `index`; NOT_FOUND from the count on. (optional) */
  pgr_status (*counter)(pgr_device *device, uint32_t index, pgr_counter *out, pgr_error *error);
} pgr_profile_api;

#endif
