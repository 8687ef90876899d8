// The page that stands for another while the database is away: asks for that one, and shows it once it is answered.
setInterval(async () => {
  try {
    const { status } = await fetch(location.href, { method: "HEAD", cache: "no-store" });
    if (status !== 503) location.reload();
  } catch { /* nothing answers at all: ask again */ }
}, Number(document.documentElement.dataset.wait) * 1000);
