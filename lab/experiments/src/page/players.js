// Each player's frame is as high as its content, which the player reports.

const HEIGHT_MAX = 6000;
const players = [...document.querySelectorAll("iframe.player")];

addEventListener("message", (event) => {
  const frame = [...document.querySelectorAll("iframe.player")].find((player) => player.contentWindow === event.source);
  const height = Number(event.data?.height);
  if (frame && height > 0) frame.style.height = `${Math.min(HEIGHT_MAX, Math.ceil(height))}px`;
});
