// What the first screen of an incident can do without: fetched once the page is there, and again with every newer copy of it.
import { afterPage, readPage, showPage } from "./parts.js";

const kind = "details";
const AGAIN = 60_000; // ms after which a page of the present looks again: rows of `change` are no event of the incident
let latest = { address: "", page: null };
let asking = null;

async function load() {
  const address = document.querySelector("[data-details]").dataset.details;
  if (address !== latest.address) latest = { address, page: null };
  else if (latest.page) showPage(latest.page, { kind }); // what was filled and came empty again
  asking?.abort();
  const asked = asking = new AbortController();
  try {
    const { response, page } = await readPage(address, { signal: asked.signal });
    if (!response.ok) throw new Error(`answered ${response.status}`);
    latest = { address, page };
    showPage(page, { kind });
  } catch (error) {
    if (error.name === "AbortError") return;
    console.warn("details", error);
  }
  if (asked === asking) document.getElementById("details-failed").hidden = latest.page !== null;
}

document.addEventListener("click", (event) => { if (event.target.matches("[data-details-again]")) load(); });
afterPage(load);
load();
if (document.body.dataset.watch) setInterval(() => { if (!document.hidden) load(); }, AGAIN);
