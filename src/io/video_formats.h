#pragma once
// The readers of FFmpeg that a foreign video may choose by its content.

namespace cytra::io {

/// The containers in a single file. Others may name other files and addresses (HLS, DASH, concat,
/// SDP, numbered images), or is a device: AVFormatContext::format_whitelist.
inline constexpr char kVideoContainers[] =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,"
    "gif,"
    "apng,nut,mxf,gxf,dv,ivf,av1,obu,h264,hevc,m4v,h263,h261,vc1,vc1test,dirac,cavsvideo,mjpeg,"
    "mjpeg_2000,mpjpeg,smjpeg,yuv4mpegpipe,rm,wtv,swf,r3d,nsv,ffm,rawvideo";
/// The protocol for such a file: its own name only.
inline constexpr char kVideoFileProtocols[] = "file";

}  // namespace cytra::io
