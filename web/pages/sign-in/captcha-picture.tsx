import { useState } from 'preact/hooks';
import type { components } from '../../generated/api.d.ts';
import { useMessages } from '../../lib/language.tsx';
import { useUniqueId } from '../../lib/unique-id.ts';
import type { Point } from './captcha-step.tsx';
import type en from './messages.en.ts';

/** The scale of points, whatever the size of the picture. */
const scale = 10_000;
const stepSize = 400;
const smallStepSize = 80;

const directions: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

const clamp = (value: number): number => Math.min(Math.max(value, 0), scale);

/** The picture, with the points that were placed, and a marker that the arrow keys move. */
export function CaptchaPicture({
  challenge,
  points,
  onPlace,
  onUndo,
}: {
  /** Null while it is loading. The place keeps its size. */
  readonly challenge: components['schemas']['ClickCaptchaChallenge'] | null;
  readonly points: readonly Point[];
  readonly onPlace: (point: Point) => void;
  readonly onUndo: () => void;
}) {
  const t = useMessages<typeof en>();
  const helpId = useUniqueId();
  const [marker, setMarker] = useState<Point>({ x: scale / 2, y: scale / 2 });
  const click = (event: MouseEvent & { currentTarget: HTMLElement }): void => {
    // The Enter key of a screen reader may click without a place.
    if (event.detail === 0) onPlace(marker);
    else onPlace(pointOf(event));
  };
  const press = (event: KeyboardEvent): void => {
    const direction = directions[event.key];
    if (direction !== undefined) {
      const size = event.shiftKey ? smallStepSize : stepSize;
      setMarker({ x: clamp(marker.x + direction.x * size), y: clamp(marker.y + direction.y * size) });
    } else if (event.key === 'Enter' || event.key === ' ') onPlace(marker);
    else if (event.key === 'Backspace') onUndo();
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="captcha-prompt">
        {challenge !== null && <img src={challenge.prompt_image} alt={t('promptImage')} />}
      </div>
      <div
        class="captcha-picture"
        role="application"
        aria-label={t('captchaPlace')}
        aria-describedby={helpId}
        aria-busy={challenge === null}
        tabIndex={0}
        onClick={click}
        onKeyDown={press}
      >
        {challenge !== null && <img src={challenge.image} alt="" draggable={false} />}
        {points.map((point, i) => (
          <span key={i} class="captcha-point" style={placeOf(point)} aria-hidden="true">
            {i + 1}
          </span>
        ))}
        <span class="captcha-marker" style={placeOf(marker)} aria-hidden="true" />
      </div>
      <p class="small soft captcha-keys" id={helpId}>
        {t('captchaKeys')}
      </p>
    </>
  );
}

function pointOf({ clientX, clientY, currentTarget }: MouseEvent & { currentTarget: HTMLElement }): Point {
  const { left, top, width, height } = currentTarget.getBoundingClientRect();
  return {
    x: clamp(((clientX - left) / width) * scale),
    y: clamp(((clientY - top) / height) * scale),
  };
}

const placeOf = ({ x, y }: Point) => ({ left: `${(x / scale) * 100}%`, top: `${(y / scale) * 100}%` });
