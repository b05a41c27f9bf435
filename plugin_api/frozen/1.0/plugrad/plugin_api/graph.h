/* A list of launches and copies built once and replayed. Interface "pgr.graph"; the host emulates
   it where it is absent. */
#ifndef PLUGRAD_PLUGIN_API_GRAPH_H
#define PLUGRAD_PLUGIN_API_GRAPH_H

#include "plugrad/plugin_api/runner.h"

typedef struct pgr_graph pgr_graph;

#define PGR_GRAPH_LAUNCH 0u
#define PGR_GRAPH_COPY 1u

typedef struct pgr_graph_node {
  uint32_t struct_size, struct_id;
  const void *next;
  uint32_t kind; /* PGR_GRAPH_* */
  uint32_t depends_count;
  const uint32_t *depends; /* numbers of earlier nodes that must be done; others may overlap */
  pgr_kernel *kernel;      /* LAUNCH */
  const pgr_launch_desc *launch;
  pgr_buffer *dst, *src; /* COPY */
  uint64_t dst_offset_bytes, src_offset_bytes, size_bytes;
} pgr_graph_node;

typedef struct pgr_graph_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] Copies all it is given; what a replay names must be alive until the replay is done. */
  pgr_status (*build)(pgr_device *device, const pgr_graph_node *nodes, uint32_t node_count,
                      uint32_t node_stride, pgr_graph **out, pgr_error *error);
  /* [serial per graph] Replaces an argument of node `node` in later replays: buffer number `slot`
     (of a copy, 0 is dst and 1 src), or scalar `slot`. The old one, and others, may be gone. */
  pgr_status (*patch_buffer)(pgr_device *device, pgr_graph *graph, uint32_t node, uint32_t slot,
                             pgr_buffer *buffer, pgr_error *error);
  pgr_status (*patch_scalar)(pgr_device *device, pgr_graph *graph, uint32_t node, uint32_t slot,
                             uint64_t bits, pgr_error *error);
  /* [serial per queue and graph] In order on the queue. */
  pgr_status (*replay)(pgr_device *device, pgr_queue *queue, pgr_graph *graph, pgr_error *error);
  /* [any] Accepts NULL, never fails. Queued replays still finish; buffers it names may be gone. */
  void (*destroy)(pgr_device *device, pgr_graph *graph);
} pgr_graph_api;

#endif
