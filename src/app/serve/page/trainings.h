#pragma once
// What the page /trainings asks for: the trainings below a folder, with their reports. It only
// reads.
#include <string>

#include "app/serve/http/http.h"

namespace cytra::app {

/// The run folders below `folder` that have a report.html, the newest first:
/// [{"run": "cells/2026-01-31", "is_running": true, "changed": seconds of Unix}]. Links are not
/// followed.
HttpResponse list_trainings(const std::string& folder);
/// The report of a run that list_trainings() names. Throws: HttpError (404) for any other text.
HttpResponse training_report(const std::string& folder, const std::string& run);

}  // namespace cytra::app
