/** A bar that fills up. Its number belongs beside it. @param share 0 to 1; null while it is unknown */
export const Progress = ({ share, label }: { readonly share: number | null; readonly label: string }) => (
  <div
    class={`progress ${share === null ? 'unknown' : ''}`}
    role="progressbar"
    aria-label={label}
    aria-valuemin={0}
    aria-valuemax={100}
    aria-valuenow={share === null ? undefined : Math.floor(share * 100)}
  >
    <span style={share === null ? undefined : { width: `${Math.min(1, share) * 100}%` }} />
  </div>
);
