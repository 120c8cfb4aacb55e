/**
 * A bar that fills up. Its number belongs beside it.
 * @param share 0 to 1; null while it is unknown
 * @param isLimit whether it is bad news if it is full
 */
export const Progress = ({
  share,
  label,
  isLimit = false,
}: {
  readonly share: number | null;
  readonly label: string;
  readonly isLimit?: boolean;
}) => (
  <div
    class={`progress ${share === null ? 'unknown' : isLimit && share >= 1 ? 'full' : ''}`}
    role="progressbar"
    aria-label={label}
    aria-valuemin={0}
    aria-valuemax={100}
    aria-valuenow={share === null ? undefined : Math.floor(share * 100)}
  >
    <span style={share === null ? undefined : { width: `${Math.min(1, share) * 100}%` }} />
  </div>
);
