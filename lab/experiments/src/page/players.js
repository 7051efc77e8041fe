// The frames of players are as high as what is in them, which they tell.

const HEIGHT_MAX = 6000;
const players = [...document.querySelectorAll("iframe.player")];

addEventListener("message", (event) => {
  const frame = [...document.querySelectorAll("iframe.player")].find((player) => player.contentWindow === event.source);
  const height = Number(event.data?.height);
  if (frame && height > 0) frame.style.height = `${Math.min(HEIGHT_MAX, Math.ceil(height))}px`;
});
