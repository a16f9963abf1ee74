"""Projects and their milestones, as owners and the pipeline change them."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from cuepost.domain.instants import to_text
from tests.model.caller import NUMBER, SECONDS, Caller
from tests.model.expected import MOVES, Project


class ProjectRules(Caller):
    @rule(kind=st.sampled_from(("video", "video", "transcript", None)), access=st.none() | SECONDS)
    def create_project(self, kind: str | None, access: int | None) -> None:
        name, until = self.new_name(), self.after(access)
        body = {"name": name, "kind": kind, "accessExpiresAt": until and to_text(until)}
        why = (422, "expiry_in_the_past") if access == 0 else None
        made = self.twice("/v1/projects", body, why)
        if why is None:
            self.model.projects[made["id"]] = Project(name, kind or "video", until)
            self.settle()
            self.require_project(made, made["id"])

    @rule(number=NUMBER, access=st.none() | SECONDS, stale=st.none() | st.booleans())
    def set_access_window(self, number: int, access: int | None, stale: bool | None) -> None:
        project_id, project = self.some_project(number)
        until, why, path = self.after(access), self.absence(project), f"/v1/projects/{project_id}"
        headers = self.condition(path, stale, why)
        body = {"accessExpiresAt": until and to_text(until)}
        answer = self.call("PATCH", path, body, headers=headers)
        if self.refused(answer, why or ((412, "precondition_failed") if stale else None)):
            return
        assert project is not None
        project.access_until = until
        self.settle()
        self.require_project(answer.json(), project_id)
        self.require_version(path, (project_id, replace(project)))

    @precondition(lambda self: self.model.open)
    @rule(number=NUMBER, action=st.sampled_from(("export", "cancel")))
    def move_project(self, number: int, action: str) -> None:
        project_id, project = self.some_project(number)
        status = {"export": "exporting", "cancel": "cancelled"}[action]
        answer = self.call("POST", f"/v1/projects/{project_id}/{action}")
        why = self.absence(project)
        if why is None and project is not None and status not in MOVES[project.status]:
            why = (409, "illegal_transition")
        if self.refused(answer, why):
            return
        reported = self.model.move(project_id, status, self.service.now)
        if reported["event"]:
            [event] = self.read(f"/v1/events?projectId={project_id}&limit=1")["data"]
            self.model.happened(event["id"], project_id, reported, self.service.now)
        self.settle()
        self.require_project(answer.json(), project_id)

    @rule(number=NUMBER)
    def delete_project(self, number: int) -> None:
        project_id, project = self.some_project(number)
        answer = self.call("DELETE", f"/v1/projects/{project_id}")
        if not self.refused(answer, self.absence(project), success=204):
            assert project is not None
            project.deleted, project.name = True, ""
            self.model.stop("project_deleted", project_id=project_id)
        self.settle()

    @rule(number=NUMBER)
    def fetch_result(self, number: int) -> None:
        """The last completed export, whatever has become of the project since."""
        project_id, project = self.some_project(number)
        answer = self.call("GET", f"/v1/projects/{project_id}/result")
        why = self.absence(project)
        if why is None and project is not None:
            if project.has_expired(self.service.now):
                why = (410, "project_access_expired")
            elif project.exported_at is None:
                why = (409, "result_not_ready")
        if self.refused(answer, why):
            return
        assert project is not None
        assert project.exported_at is not None
        found = answer.json()
        assert tuple(each["name"] for each in found.pop("links")) == project.files
        assert found == {
            "projectId": project_id,
            "status": project.status,
            "stage": project.stage,
            "exportedAt": to_text(project.exported_at),
            "accessExpiresAt": project.access_until and to_text(project.access_until),
        }

    @rule(chosen=st.lists(st.tuples(NUMBER, NUMBER, st.booleans()), min_size=1, max_size=4))
    def report(self, chosen: list[tuple[int, int, bool]]) -> None:
        milestones = [self.some_milestone(*each) for each in chosen]
        self.report_all(milestones)

    @precondition(lambda self: self.model.reports)
    @rule(number=NUMBER, same=st.booleans())
    def report_again(self, number: int, same: bool) -> None:
        """With the content that it had, or with that of another project."""
        report_id = sorted(self.model.reports)[number % len(self.model.reports)]
        milestone, _ = self.model.reports[report_id]
        if not same:
            other = self.some_project(number)[0]
            milestone = {"reportId": report_id, "projectId": other, "status": "failed"}
        self.report_all([milestone])

    def report_all(self, milestones: list[dict[str, Any]]) -> None:
        body, key = {"milestones": milestones}, self.service.running.api.pipeline
        answer = self.service.call("POST", "/v1/milestones", body, key=key)
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        for milestone, result in zip(milestones, results, strict=True):
            report_id, project_id = milestone["reportId"], milestone["projectId"]
            known = report_id in self.model.reports and project_id in self.model.projects
            reported = self.model.report(milestone, self.service.now)
            if reported["event"] and not known:
                reported["eventId"] = result["eventId"]
                self.model.happened(result["eventId"], project_id, reported, self.service.now)
            assert result == {"reportId": report_id, "accepted": reported["accepted"]} | {
                name: reported[name]
                for name in ("eventId", "notified", "reason")
                if reported.get(name) is not None
            }
        self.settle()

    def some_milestone(self, number: int, move: int, allowed: bool) -> dict[str, Any]:
        project_id, project = self.some_project(number)
        possible = sorted(MOVES if project is None or not allowed else MOVES[project.status])
        status = (possible or sorted(MOVES))[move % len(possible or MOVES)]
        milestone = {"reportId": self.new_name(), "projectId": project_id, "status": status}
        return milestone | (self.some_files(move) if status == "completed" else {})

    def some_files(self, number: int) -> dict[str, Any]:
        """Every third report omits them."""
        if number % 3 == 0:
            return {}
        file = {"kind": "video", "key": "a/1", "contentType": "video/mp4", "sizeBytes": 1}
        return {"artifacts": [file | {"name": self.new_name()} for _ in range(number % 3 - 1)]}
