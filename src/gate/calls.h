/* calls: the handlers that the table of routes names. Each answers its request, now or later. */
#pragma once

#include "gate/inside.h"

void call_root(struct request *r);
void call_health(struct request *r);
void call_metrics(struct request *r);
void call_openapi(struct request *r);

void call_environments(struct request *r);

void call_run(struct request *r);

void call_ask(struct request *r);

void call_session_new(struct request *r);
void call_sessions(struct request *r);
void call_session(struct request *r);
void call_session_delete(struct request *r);
void call_interrupt(struct request *r);
void call_variables(struct request *r);

void call_cell_new(struct request *r);
void call_check(struct request *r);
void call_cells(struct request *r);
void call_cell(struct request *r);
void call_notebook(struct request *r);

void call_checkpoints(struct request *r);
void call_rollback(struct request *r);
void call_fork(struct request *r);
void call_try(struct request *r);

void call_files(struct request *r);
void call_file(struct request *r);
void call_file_delete(struct request *r);
extern const struct body_sink sink_upload, sink_multipart;
